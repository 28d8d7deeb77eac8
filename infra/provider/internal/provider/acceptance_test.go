package provider

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/echoprovider"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/hashicorp/terraform-plugin-testing/tfversion"

	"github.com/floe-db/terraform-provider-floe/internal/console"
)

// Against a real console, whose address and token (of role admin) the environment names; left out without TF_ACC.

const password = "correct horse battery staple"

var servers = map[string]func() (tfprotov6.ProviderServer, error){
	"floe": providerserver.NewProtocol6WithError(New()),
	"echo": echoprovider.NewProviderServer(),
}

func realConsole(t *testing.T) *console.Client {
	t.Helper()
	if os.Getenv("TF_ACC") == "" {
		t.Skip("TF_ACC is not set")
	}
	client, err := console.New(os.Getenv(urlVariable), os.Getenv(tokenVariable))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func instanceConfig(more string) string {
	return fmt.Sprintf(`
resource "floe_instance" "shop" {
  name        = "tf-shop"
  password_wo = %q
  %s
}
`, password, more)
}

const workMem = `
resource "floe_setting" "work_mem" {
  cluster_id = floe_instance.shop.cluster_id
  name       = "work_mem"
  value      = %q
}
`

const replica = `
resource "floe_standby" "shop_2" {
  cluster_id = floe_instance.shop.cluster_id
  name       = "tf-shop-2"
}
`

// set changes a setting as somebody in the console does it.
func set(t *testing.T, client *console.Client, name, value string) {
	t.Helper()
	shown, err := findInstance(context.Background(), client, "tf-shop")
	if err == nil {
		err = client.Order(context.Background(), "setting.set", map[string]any{
			"scope":   map[string]any{"clusterId": shown.Cluster.ClusterID},
			"changes": []any{map[string]any{"name": name, "value": value}},
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func noPassword(state *terraform.State) error {
	if strings.Contains(fmt.Sprint(state), password) {
		return fmt.Errorf("the password stands in the state")
	}
	return nil
}

// Every step is followed by a second plan, which must be empty.
func TestAClusterIsMadeChangedImportedAndDestroyed(t *testing.T) {
	client := realConsole(t)
	resource.Test(t, resource.TestCase{
		TerraformVersionChecks:   []tfversion.TerraformVersionCheck{tfversion.SkipBelow(tfversion.Version1_11_0)},
		ProtoV6ProviderFactories: servers,
		CheckDestroy: func(*terraform.State) error {
			for _, name := range []string{"tf-shop", "tf-shop-2"} {
				if _, err := findInstance(context.Background(), client, name); !console.IsFault(err, "instance.not_found") {
					return fmt.Errorf("%s is still there: %v", name, err)
				}
			}
			return nil
		},
		Steps: []resource.TestStep{
			{Config: instanceConfig("host = \"nowhere\""), ExpectError: regexp.MustCompile(`host "nowhere" does not exist`)},
			{
				Config: instanceConfig("deletion_protection = true") + fmt.Sprintf(workMem, "16MB"),
				Check: resource.ComposeTestCheckFunc(
					noPassword,
					resource.TestCheckResourceAttr("floe_instance.shop", "deletion_protection", "true"),
					resource.TestMatchResourceAttr("floe_instance.shop", "connection_uri", regexp.MustCompile(`^postgresql://postgres@`)),
				),
			},
			{Config: instanceConfig("deletion_protection = true"), Destroy: true, ExpectError: regexp.MustCompile(`has deletion\s+protection`)},
			// the failed destroy took the setting with it
			{Config: instanceConfig("deletion_protection = true") + fmt.Sprintf(workMem, "16MB")},
			// somebody has changed it: seen, and put back
			{
				PreConfig: func() { set(t, client, "work_mem", "64MB") },
				Config:    instanceConfig("deletion_protection = true") + fmt.Sprintf(workMem, "16MB"),
				Check:     resource.TestCheckResourceAttr("floe_setting.work_mem", "value", "16MB"),
			},
			{Config: instanceConfig("deletion_protection = true") + fmt.Sprintf(workMem, "many"), ExpectError: regexp.MustCompile(`work_mem`)},
			{
				ResourceName: "floe_instance.shop", ImportState: true, ImportStateId: "tf-shop", ImportStateVerify: true,
			},
			{
				ResourceName: "floe_setting.work_mem", ImportState: true, ImportStateId: "tf-shop/work_mem", ImportStateVerify: true,
			},
			{Config: instanceConfig("") + fmt.Sprintf(workMem, "32MB") + replica, Check: noPassword},
			{
				ResourceName: "floe_standby.shop_2", ImportState: true, ImportStateId: "tf-shop-2", ImportStateVerify: true,
			},
			// its removal leaves the primary
			{Config: instanceConfig("") + fmt.Sprintf(workMem, "32MB")},
		},
	})
}

func TestATokenForAHostIsEphemeralAndOneOfAnEnrolledHostIsNone(t *testing.T) {
	client := realConsole(t)
	var list struct {
		Hosts []shownHost `json:"hosts"`
	}
	if err := client.Query(context.Background(), "host.list", nil, &list); err != nil || len(list.Hosts) == 0 {
		t.Fatal(err)
	}
	config := func(host string) string {
		return fmt.Sprintf(`
ephemeral "floe_enrolment_token" "it" {
  host    = %q
  minutes = 30
}
provider "echo" {
  data = { enrolled = ephemeral.floe_enrolment_token.it.enrolled, has_token = ephemeral.floe_enrolment_token.it.token != null }
}
resource "echo" "it" {}
`, host)
	}
	told := func(enrolled bool) []statecheck.StateCheck {
		at := func(name string) tfjsonpath.Path { return tfjsonpath.New("data").AtMapKey(name) }
		return []statecheck.StateCheck{
			statecheck.ExpectKnownValue("echo.it", at("enrolled"), knownvalue.Bool(enrolled)),
			statecheck.ExpectKnownValue("echo.it", at("has_token"), knownvalue.Bool(!enrolled)),
		}
	}
	resource.Test(t, resource.TestCase{
		TerraformVersionChecks:   []tfversion.TerraformVersionCheck{tfversion.SkipBelow(tfversion.Version1_10_0)},
		ProtoV6ProviderFactories: servers,
		Steps: []resource.TestStep{
			{Config: config("tf-new-host"), ConfigStateChecks: told(false)},
		},
	})
	resource.Test(t, resource.TestCase{
		TerraformVersionChecks:   []tfversion.TerraformVersionCheck{tfversion.SkipBelow(tfversion.Version1_10_0)},
		ProtoV6ProviderFactories: servers,
		Steps:                    []resource.TestStep{{Config: config(list.Hosts[0].Name), ConfigStateChecks: told(true)}},
	})
}
