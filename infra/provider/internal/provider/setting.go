package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/floe-db/terraform-provider-floe/internal/console"
)

// settingResource is one setting of all members of a cluster, as Floe's file of settings holds it.
type settingResource struct{ client *console.Client }

var _ resource.ResourceWithImportState = &settingResource{}

type settingModel struct {
	ID        types.String `tfsdk:"id"`
	ClusterID types.String `tfsdk:"cluster_id"`
	Name      types.String `tfsdk:"name"`
	Value     types.String `tfsdk:"value"`
	Restart   types.Bool   `tfsdk:"restart"`
}

func (r *settingResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "floe_setting"
}

func (r *settingResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "A setting of every member of a cluster. A change is checked by the members' own binary, applied in the order that keeps standbys replaying, and rolled back on all members if one refuses it. Destroying it goes back to the default.",
		Attributes: map[string]schema.Attribute{
			"id":         schema.StringAttribute{Computed: true, PlanModifiers: stays, Description: "`cluster_id/name`."},
			"cluster_id": schema.StringAttribute{Required: true, PlanModifiers: replaces, Description: "The cluster: `floe_instance.….cluster_id`."},
			"name":       schema.StringAttribute{Required: true, PlanModifiers: replaces, Description: "Name as in postgresql.conf."},
			"value":      schema.StringAttribute{Required: true, Description: "Value as in postgresql.conf, with its unit."},
			"restart": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				Description: "Restart members where the setting needs it, standbys first. Default false: it is in force after the next restart.",
			},
		},
	}
}

func (r *settingResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.client = clientOf(req.ProviderData, &resp.Diagnostics)
}

// change sets a value on all members; nil is the default.
func (r *settingResource) change(ctx context.Context, m *settingModel, value *string) error {
	ctx, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	for tries := 0; ; tries++ {
		err := r.client.Order(ctx, "setting.set", map[string]any{
			"scope":          map[string]any{"clusterId": m.ClusterID.ValueString()},
			"changes":        []any{map[string]any{"name": m.Name.ValueString(), "value": value}},
			"restart":        m.Restart.ValueBool(),
			"reason":         "Terraform",
			"idempotencyKey": newKey(),
		})
		// a standby of the same apply joined or left in the moment of asking; nothing was ordered
		if tries == joiningTries || !console.IsFault(err, "cluster.member_left_out") {
			return err
		}
	}
}

// How often a change is asked for anew because a member joins or leaves the cluster at the same moment.
const joiningTries = 10

// read answers what the members' files hold: the value of the first that differs from the expected one; nil where no file
// holds one.
func (r *settingResource) read(ctx context.Context, m *settingModel) (*string, error) {
	var list struct {
		Members []struct {
			Name  string         `json:"name"`
			Fault *console.Fault `json:"fault"`
		} `json:"members"`
		Settings []struct {
			Values []*struct {
				Managed *string `json:"managedValue"`
			} `json:"values"`
		} `json:"settings"`
	}
	err := r.client.Query(ctx, "setting.list", map[string]any{
		"scope": map[string]any{"clusterId": m.ClusterID.ValueString()},
		"names": []string{m.Name.ValueString()},
	}, &list)
	if err != nil {
		return nil, err
	}
	for _, member := range list.Members {
		if member.Fault != nil {
			return nil, fmt.Errorf("the settings of member %q cannot be read: %w", member.Name, member.Fault)
		}
	}
	if len(list.Settings) == 0 {
		return nil, nil
	}
	var held *string
	for _, value := range list.Settings[0].Values {
		if value == nil || value.Managed == nil {
			continue
		}
		if held == nil || *value.Managed != m.Value.ValueString() {
			held = value.Managed
		}
	}
	return held, nil
}

func (r *settingResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan settingModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if err := r.change(ctx, &plan, plan.Value.ValueStringPointer()); err != nil {
		resp.Diagnostics.AddError("could not set "+plan.Name.ValueString(), err.Error())
		return
	}
	plan.ID = types.StringValue(plan.ClusterID.ValueString() + "/" + plan.Name.ValueString())
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *settingResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state settingModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	held, err := r.read(ctx, &state)
	switch {
	case console.IsFault(err, "cluster.not_found"):
		resp.State.RemoveResource(ctx)
	case err != nil:
		resp.Diagnostics.AddError("could not read "+state.Name.ValueString(), err.Error())
	case held == nil:
		resp.State.RemoveResource(ctx)
	default:
		state.Value = types.StringValue(*held)
		resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	}
}

func (r *settingResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state settingModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if !plan.Value.Equal(state.Value) {
		if err := r.change(ctx, &plan, plan.Value.ValueStringPointer()); err != nil {
			resp.Diagnostics.AddError("could not set "+plan.Name.ValueString(), err.Error())
			return
		}
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *settingResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state settingModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	err := r.change(ctx, &state, nil)
	if err != nil && !console.IsFault(err, "cluster.not_found") {
		resp.Diagnostics.AddError("could not reset "+state.Name.ValueString(), err.Error())
	}
}

// ImportState takes `cluster_id/name`, or the name of an instance of the cluster in place of the id.
func (r *settingResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	cluster, name, found := strings.Cut(req.ID, "/")
	if !found {
		resp.Diagnostics.AddError("could not import the setting", "Name it as INSTANCE/SETTING, or CLUSTER_ID/SETTING.")
		return
	}
	if !isID(cluster) {
		shown, err := findInstance(ctx, r.client, cluster)
		if err != nil {
			resp.Diagnostics.AddError("could not import the setting", err.Error())
			return
		}
		cluster = shown.Cluster.ClusterID
	}
	state := settingModel{
		ID:        types.StringValue(cluster + "/" + name),
		ClusterID: types.StringValue(cluster),
		Name:      types.StringValue(name),
		Restart:   types.BoolValue(false),
	}
	held, err := r.read(ctx, &state)
	if err == nil && held == nil {
		err = fmt.Errorf("the setting %q has its default: there is nothing to import", name)
	}
	if err != nil {
		resp.Diagnostics.AddError("could not import the setting", err.Error())
		return
	}
	state.Value = types.StringValue(*held)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}
