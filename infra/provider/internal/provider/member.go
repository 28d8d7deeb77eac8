package provider

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/floe-db/terraform-provider-floe/internal/console"
)

// A copy of a large primary takes as long as it takes.
const (
	createTime = 24 * time.Hour
	changeTime = time.Hour
)

// An instance as instance.show tells it.
type shownInstance struct {
	InstanceID string `json:"instanceId"`
	Name       string `json:"name"`
	HostName   string `json:"hostName"`
	Port       *int64 `json:"port"`
	Cluster    struct {
		ClusterID         string `json:"clusterId"`
		MemberRole        string `json:"memberRole"`
		DeletionProtected bool   `json:"deletionProtected"`
	} `json:"cluster"`
	Forms *struct {
		URI string `json:"uri"`
	} `json:"forms"`
}

// showInstance reads one by its id; nil where it is not there any more.
func showInstance(ctx context.Context, client *console.Client, id string) (*shownInstance, error) {
	var shown shownInstance
	err := client.Query(ctx, "instance.show", map[string]any{"instanceId": id}, &shown)
	if console.IsFault(err, "instance.not_found") {
		return nil, nil
	}
	return &shown, err
}

// findInstance reads one by its name or its id, as a person types it.
func findInstance(ctx context.Context, client *console.Client, named string) (*shownInstance, error) {
	var shown shownInstance
	input := map[string]any{"name": named}
	if isID(named) {
		input = map[string]any{"instanceId": named}
	}
	return &shown, client.Query(ctx, "instance.show", input, &shown)
}

func isID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for i, c := range text {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		hex := (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')
		if dash != (c == '-') || (!dash && !hex) {
			return false
		}
	}
	return true
}

type shownHost struct {
	HostID    string `json:"hostId"`
	Name      string `json:"name"`
	AgentURL  string `json:"agentUrl"`
	State     string `json:"state"`
	RevokedAt *int64 `json:"revokedAt"`
}

// findHost reads a host by its name; nil where the console has none of that name.
func findHost(ctx context.Context, client *console.Client, name string) (*shownHost, error) {
	var list struct {
		Hosts []shownHost `json:"hosts"`
	}
	if err := client.Query(ctx, "host.list", nil, &list); err != nil {
		return nil, err
	}
	for _, host := range list.Hosts {
		if host.Name == name {
			return &host, nil
		}
	}
	return nil, nil
}

// withHost adds the id of the host that was named to an input; nothing where the console chooses.
func withHost(ctx context.Context, client *console.Client, name types.String, input map[string]any) error {
	if name.IsNull() || name.IsUnknown() {
		return nil
	}
	host, err := findHost(ctx, client, name.ValueString())
	if err != nil {
		return err
	}
	if host == nil {
		return fmt.Errorf("host %q does not exist", name.ValueString())
	}
	input["hostId"] = host.HostID
	return nil
}

// newKey makes the key by which a request that is sent again starts nothing twice.
func newKey() string { return "terraform-" + rand.Text() }

func clientOf(data any, diags *diag.Diagnostics) *console.Client {
	if data == nil {
		// the provider is not configured yet; it will be asked again
		return nil
	}
	client, ok := data.(*console.Client)
	if !ok {
		diags.AddError("the provider floe was not configured", fmt.Sprintf("It was given a %T.", data))
	}
	return client
}

func pointerOr(number *int64) types.Int64 {
	if number == nil {
		return types.Int64Null()
	}
	return types.Int64Value(*number)
}
