package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/setdefault"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/floe-db/terraform-provider-floe/internal/console"
)

// databaseRoleResource is a database role of a cluster: made on its primary, and everywhere by replication.
type databaseRoleResource struct{ client *console.Client }

var (
	_ resource.ResourceWithImportState    = &databaseRoleResource{}
	_ resource.ResourceWithValidateConfig = &databaseRoleResource{}
)

type databaseRoleModel struct {
	ID              types.String `tfsdk:"id"`
	ClusterID       types.String `tfsdk:"cluster_id"`
	Name            types.String `tfsdk:"name"`
	Login           types.Bool   `tfsdk:"login"`
	CreateDB        types.Bool   `tfsdk:"createdb"`
	CreateRole      types.Bool   `tfsdk:"createrole"`
	ConnectionLimit types.Int64  `tfsdk:"connection_limit"`
	ValidUntil      types.String `tfsdk:"valid_until"`
	MemberOf        types.Set    `tfsdk:"member_of"`
	Password        types.String `tfsdk:"password_wo"`
	PasswordVersion types.Int64  `tfsdk:"password_wo_version"`
}

// shownRole is a role as role.list tells it.
type shownRole struct {
	Name            string   `json:"name"`
	Login           bool     `json:"login"`
	CreateDB        bool     `json:"createDb"`
	CreateRole      bool     `json:"createRole"`
	ConnectionLimit int64    `json:"connectionLimit"`
	ValidUntil      *float64 `json:"validUntil"`
	HasPassword     bool     `json:"hasPassword"`
	MemberOf        []string `json:"memberOf"`
	Kept            *string  `json:"kept"`
}

func (r *databaseRoleResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "floe_database_role"
}

func (r *databaseRoleResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	off := func(words string) schema.BoolAttribute {
		return schema.BoolAttribute{
			Optional: true, Computed: true, Default: booldefault.StaticBool(false), Description: words + " Default false.",
		}
	}
	none, _ := types.SetValue(types.StringType, []attr.Value{})
	resp.Schema = schema.Schema{
		Description: "A database role of a cluster. Roles of Floe's own, predefined ones, superusers and whoever could become one are refused. Destroying it is refused by PostgreSQL while the role owns objects or has privileges on them.",
		Attributes: map[string]schema.Attribute{
			"id":         schema.StringAttribute{Computed: true, PlanModifiers: stays, Description: "`cluster_id/name`."},
			"cluster_id": schema.StringAttribute{Required: true, PlanModifiers: replaces, Description: "The cluster: `floe_instance.….cluster_id`."},
			"name":       schema.StringAttribute{Required: true, PlanModifiers: replaces, Description: "Its name, exactly: nothing is folded to lower case."},
			"login":      off("LOGIN: it may log in."),
			"createdb":   off("CREATEDB: it may create databases."),
			"createrole": off("CREATEROLE: it may create roles."),
			"connection_limit": schema.Int64Attribute{
				Optional: true, Computed: true, Default: int64default.StaticInt64(-1),
				Description: "Sessions it may have at once. Default -1: no limit.",
			},
			"valid_until": schema.StringAttribute{
				Optional:    true,
				Description: "Until when its password is accepted, in RFC 3339, such as `2030-01-01T00:00:00Z`. Default: for ever.",
			},
			"member_of": schema.SetAttribute{
				ElementType: types.StringType, Optional: true, Computed: true, Default: setdefault.StaticValue(none),
				Description: "Roles that are granted to it directly, and no others.",
			},
			"password_wo": schema.StringAttribute{
				Optional: true, Sensitive: true, WriteOnly: true,
				Description: "Its password, printable ASCII; left out, it has none. Only its SCRAM verifier is sent, when the role is created and when `password_wo_version` changes; it stands in no state and no plan.",
			},
			"password_wo_version": schema.Int64Attribute{
				Optional:    true,
				Description: "Any number; another one has the password set again. With it, a password that somebody has taken away is drift.",
			},
		},
	}
}

func (r *databaseRoleResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.client = clientOf(req.ProviderData, &resp.Diagnostics)
}

func (r *databaseRoleResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config databaseRoleModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if until := config.ValidUntil; !until.IsNull() && !until.IsUnknown() {
		if _, err := time.Parse(time.RFC3339Nano, until.ValueString()); err != nil {
			resp.Diagnostics.AddAttributeError(path.Root("valid_until"), "this is no moment in RFC 3339", err.Error())
		}
	}
	if config.PasswordVersion.IsNull() || !config.Password.IsNull() {
		return
	}
	resp.Diagnostics.AddAttributeError(path.Root("password_wo_version"), "there is no password of this version",
		"Set password_wo too, or leave both out: then the role has no password.")
}

// primary answers which instance of the cluster roles are changed on now.
func (r *databaseRoleResource) primary(ctx context.Context, cluster string) (string, error) {
	var shown struct {
		Cluster struct {
			PrimaryInstanceID string `json:"primaryInstanceId"`
		} `json:"cluster"`
	}
	err := r.client.Query(ctx, "cluster.show", map[string]any{"clusterId": cluster}, &shown)
	return shown.Cluster.PrimaryInstanceID, err
}

// find reads a role by its name; nil where there is none.
func (r *databaseRoleResource) find(ctx context.Context, m *databaseRoleModel) (*shownRole, error) {
	instance, err := r.primary(ctx, m.ClusterID.ValueString())
	if err != nil {
		return nil, err
	}
	var list struct {
		Roles []shownRole `json:"roles"`
	}
	input := map[string]any{"instanceId": instance, "name": m.Name.ValueString()}
	if err := r.client.Query(ctx, "role.list", input, &list); err != nil || len(list.Roles) == 0 {
		return nil, err
	}
	return &list.Roles[0], nil
}

// take writes what the instance says into the model. The same moment keeps its form.
func (m *databaseRoleModel) take(ctx context.Context, shown *shownRole) diag.Diagnostics {
	m.ID = types.StringValue(m.ClusterID.ValueString() + "/" + m.Name.ValueString())
	m.Login = types.BoolValue(shown.Login)
	m.CreateDB = types.BoolValue(shown.CreateDB)
	m.CreateRole = types.BoolValue(shown.CreateRole)
	m.ConnectionLimit = types.Int64Value(shown.ConnectionLimit)
	if shown.ValidUntil == nil {
		m.ValidUntil = types.StringNull()
	} else {
		at := time.UnixMilli(int64(*shown.ValidUntil)).UTC()
		known, err := time.Parse(time.RFC3339Nano, m.ValidUntil.ValueString())
		if err != nil || known.UnixMilli() != at.UnixMilli() {
			m.ValidUntil = types.StringValue(at.Format(time.RFC3339Nano))
		}
	}
	if !shown.HasPassword {
		m.PasswordVersion = types.Int64Null()
	}
	memberOf, diags := types.SetValueFrom(ctx, types.StringType, shown.MemberOf)
	m.MemberOf = memberOf
	return diags
}

func (m *databaseRoleModel) groups(ctx context.Context, diags *diag.Diagnostics) []string {
	groups := []string{}
	diags.Append(m.MemberOf.ElementsAs(ctx, &groups, false)...)
	return groups
}

// attributes are those that are named in every request; a null moment is for ever.
func (m *databaseRoleModel) attributes() map[string]any {
	return map[string]any{
		"role": m.Name.ValueString(), "login": m.Login.ValueBool(),
		"createDb": m.CreateDB.ValueBool(), "createRole": m.CreateRole.ValueBool(),
		"connectionLimit": m.ConnectionLimit.ValueInt64(), "validUntil": m.ValidUntil.ValueStringPointer(),
	}
}

// verifier answers what PostgreSQL stores of the password that is configured; nil of none.
func verifier(config *databaseRoleModel, diags *diag.Diagnostics) *string {
	if config.Password.IsNull() {
		return nil
	}
	made, err := console.ScramVerifier(config.Password.ValueString())
	if err != nil {
		diags.AddAttributeError(path.Root("password_wo"), "this password cannot be used", err.Error())
	}
	return &made
}

// order submits a change of the role on the primary, and waits for its end.
func (r *databaseRoleResource) order(ctx context.Context, procedure string, m *databaseRoleModel, input map[string]any) error {
	ctx, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	instance, err := r.primary(ctx, m.ClusterID.ValueString())
	if err != nil {
		return err
	}
	input["instanceId"], input["idempotencyKey"] = instance, newKey()
	return r.client.Order(ctx, procedure, input)
}

func (r *databaseRoleResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan, config databaseRoleModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	input := plan.attributes()
	input["memberOf"] = plan.groups(ctx, &resp.Diagnostics)
	input["passwordVerifier"] = verifier(&config, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if err := r.order(ctx, "role.create", &plan, input); err != nil {
		resp.Diagnostics.AddError("could not create the role", err.Error())
		return
	}
	plan.ID = types.StringValue(plan.ClusterID.ValueString() + "/" + plan.Name.ValueString())
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *databaseRoleResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state databaseRoleModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	shown, err := r.find(ctx, &state)
	switch {
	case console.IsFault(err, "cluster.not_found"), console.IsFault(err, "instance.not_found"):
		resp.State.RemoveResource(ctx)
	case err != nil:
		resp.Diagnostics.AddError("could not read the role", err.Error())
	case shown == nil:
		resp.State.RemoveResource(ctx)
	default:
		resp.Diagnostics.Append(state.take(ctx, shown)...)
		resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	}
}

func (r *databaseRoleResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state, config databaseRoleModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	input := plan.attributes()
	wanted, held := plan.groups(ctx, &resp.Diagnostics), state.groups(ctx, &resp.Diagnostics)
	input["grant"], input["revoke"] = without(wanted, held), without(held, wanted)
	if !plan.PasswordVersion.Equal(state.PasswordVersion) {
		input["passwordVerifier"] = verifier(&config, &resp.Diagnostics)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	if err := r.order(ctx, "role.change", &plan, input); err != nil {
		resp.Diagnostics.AddError("could not change the role", err.Error())
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

// without answers those of all that are not among some.
func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(one string) bool { return slices.Contains(some, one) })
}

func (r *databaseRoleResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state databaseRoleModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	name := state.Name.ValueString()
	err := r.order(ctx, "role.drop", &state, map[string]any{"role": name, "confirmRole": name})
	for _, gone := range []string{"role.not_found", "cluster.not_found", "instance.not_found"} {
		if console.IsFault(err, gone) {
			return
		}
	}
	if err != nil {
		resp.Diagnostics.AddError("could not drop the role", err.Error())
	}
}

// ImportState takes `INSTANCE/ROLE`, or the id of the cluster in place of an instance's name.
func (r *databaseRoleResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	fail := func(why string) { resp.Diagnostics.AddError("could not import the role", why) }
	cluster, name, found := strings.Cut(req.ID, "/")
	if !found {
		fail("Name it as INSTANCE/ROLE, or CLUSTER_ID/ROLE.")
		return
	}
	if !isID(cluster) {
		shown, err := findInstance(ctx, r.client, cluster)
		if err != nil {
			fail(err.Error())
			return
		}
		cluster = shown.Cluster.ClusterID
	}
	state := databaseRoleModel{ClusterID: types.StringValue(cluster), Name: types.StringValue(name)}
	shown, err := r.find(ctx, &state)
	switch {
	case err != nil:
		fail(err.Error())
	case shown == nil:
		fail(fmt.Sprintf("Role %q does not exist.", name))
	case shown.Kept != nil:
		fail(fmt.Sprintf("Role %q is Floe's own, or a superuser or could become one: Floe does not change it.", name))
	default:
		resp.Diagnostics.Append(state.take(ctx, shown)...)
		resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	}
}
