package provider

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

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

func roleConfig(more string) string {
	return fmt.Sprintf(`
resource "floe_instance" "roles" {
  name        = "tf-roles"
  password_wo = %q
}
resource "floe_database_role" "readers" {
  cluster_id = floe_instance.roles.cluster_id
  name       = "readers"
}
resource "floe_database_role" "app" {
  cluster_id = floe_instance.roles.cluster_id
  name       = "my \"app\""
  %s
}
`, password, more)
}

const (
	appRole   = `my "app"`
	fullRole  = "login = true\n connection_limit = 5\n valid_until = \"2099-01-01T01:00:00+01:00\"\n member_of = [floe_database_role.readers.name]\n"
	firstPass = fullRole + "password_wo = \"" + password + "\"\n password_wo_version = 1\n"
	nextPass  = fullRole + "password_wo = \"" + password + " two\"\n password_wo_version = 2\n"
)

// changeRole changes the role as somebody with the command line does it.
func changeRole(t *testing.T, client *console.Client, input map[string]any) {
	t.Helper()
	shown, err := findInstance(context.Background(), client, "tf-roles")
	if err == nil {
		input["instanceId"], input["role"] = shown.InstanceID, appRole
		err = client.Order(context.Background(), "role.change", input)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// roleIs compares the role with what the instance has.
func roleIs(client *console.Client, expected shownRole) resource.TestCheckFunc {
	return func(*terraform.State) error {
		instance, err := findInstance(context.Background(), client, "tf-roles")
		if err != nil {
			return err
		}
		var list struct {
			Roles []shownRole `json:"roles"`
		}
		input := map[string]any{"instanceId": instance.InstanceID, "name": appRole}
		if err := client.Query(context.Background(), "role.list", input, &list); err != nil {
			return err
		}
		if len(list.Roles) != 1 || !reflect.DeepEqual(list.Roles[0], expected) {
			return fmt.Errorf("%+v, expected %+v", list.Roles, expected)
		}
		return nil
	}
}

// Every step is followed by a second plan, which must be empty.
func TestADatabaseRoleIsMadeChangedImportedAndDropped(t *testing.T) {
	client := realConsole(t)
	end := float64(time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli())
	full := shownRole{
		Name: appRole, Login: true, ConnectionLimit: 5, ValidUntil: &end, HasPassword: true, MemberOf: []string{"readers"},
	}
	plain := shownRole{Name: appRole, ConnectionLimit: -1, HasPassword: true, MemberOf: []string{}}
	resource.Test(t, resource.TestCase{
		TerraformVersionChecks:   []tfversion.TerraformVersionCheck{tfversion.SkipBelow(tfversion.Version1_11_0)},
		ProtoV6ProviderFactories: servers,
		Steps: []resource.TestStep{
			{Config: roleConfig("valid_until = \"tomorrow\""), ExpectError: regexp.MustCompile(`no moment in RFC 3339`)},
			{Config: roleConfig("password_wo_version = 1"), ExpectError: regexp.MustCompile(`no password of this version`)},
			{Config: roleConfig(firstPass), Check: resource.ComposeTestCheckFunc(noPassword, roleIs(client, full))},
			{Config: roleConfig("member_of = [\"pg_read_server_files\"]"), ExpectError: regexp.MustCompile(`is\s+reserved`)},
			// somebody has changed it, and taken the password away: seen, and put back
			{
				PreConfig: func() {
					changeRole(t, client, map[string]any{"createDb": true, "connectionLimit": 9, "revoke": []string{"readers"}})
				},
				Config: roleConfig(firstPass), Check: roleIs(client, full),
			},
			{
				PreConfig: func() { changeRole(t, client, map[string]any{"passwordVerifier": nil}) },
				Config:    roleConfig(firstPass), Check: roleIs(client, full),
			},
			{Config: roleConfig(nextPass), Check: resource.ComposeTestCheckFunc(noPassword, roleIs(client, full))},
			{
				ResourceName: "floe_database_role.app", ImportState: true, ImportStateId: "tf-roles/" + appRole,
				ImportStateVerify: true,
				// the version of a password is nowhere but here, and the moment is read in UTC
				ImportStateVerifyIgnore: []string{"password_wo_version", "valid_until"},
			},
			{
				ResourceName: "floe_database_role.app", ImportState: true, ImportStateId: "tf-roles/postgres",
				ExpectError: regexp.MustCompile(`does\s+not\s+change\s+it`),
			},
			// a version that is left out says nothing of the password
			{Config: roleConfig("password_wo = \"" + password + "\""), Check: resource.ComposeTestCheckFunc(noPassword, roleIs(client, plain))},
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
