package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/floe-db/terraform-provider-floe/internal/console"
)

// instanceResource is an instance that was made as a primary: a cluster of one, to which standbys may be added.
type instanceResource struct{ client *console.Client }

var _ resource.ResourceWithImportState = &instanceResource{}

type instanceModel struct {
	ID                 types.String `tfsdk:"id"`
	ClusterID          types.String `tfsdk:"cluster_id"`
	Name               types.String `tfsdk:"name"`
	Host               types.String `tfsdk:"host"`
	Password           types.String `tfsdk:"password_wo"`
	DeletionProtection types.Bool   `tfsdk:"deletion_protection"`
	KeepFiles          types.Bool   `tfsdk:"keep_files_on_destroy"`
	Port               types.Int64  `tfsdk:"port"`
	ConnectionURI      types.String `tfsdk:"connection_uri"`
}

func (r *instanceResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "floe_instance"
}

var (
	stays    = []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	replaces = []planmodifier.String{stringplanmodifier.RequiresReplace()}
	// what the console chose stays
	chosen = []planmodifier.String{stringplanmodifier.RequiresReplace(), stringplanmodifier.UseStateForUnknown()}
)

const keepFilesWords = "When it is destroyed its data directory is renamed and stays on the host, instead of being removed. Default false."

func (r *instanceResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "An instance: a PostgreSQL server with its data directory, and a cluster of one until a `floe_standby` is added.",
		Attributes: map[string]schema.Attribute{
			"id":         schema.StringAttribute{Computed: true, PlanModifiers: stays, Description: "Id of the instance."},
			"cluster_id": schema.StringAttribute{Computed: true, PlanModifiers: stays, Description: "Id of its cluster, for `floe_standby` and `floe_setting`."},
			"name":       schema.StringAttribute{Required: true, PlanModifiers: replaces, Description: "Lower-case letters, digits and hyphens."},
			"host":       schema.StringAttribute{Optional: true, Computed: true, PlanModifiers: chosen, Description: "Name of its host. Default: the one with the most free ports."},
			"password_wo": schema.StringAttribute{
				Required: true, Sensitive: true, WriteOnly: true,
				Description: "Password of the role `postgres`, printable ASCII. Only its SCRAM verifier is sent, when the instance is created; it stands in no state and no plan.",
			},
			"deletion_protection": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				Description: "While true, nobody deletes the instance, here or in the console. Apply false before destroying it.",
			},
			"keep_files_on_destroy": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false), Description: keepFilesWords,
			},
			"port":           schema.Int64Attribute{Computed: true, Description: "Port it listens on."},
			"connection_uri": schema.StringAttribute{Computed: true, Description: "How to connect, without a password. Null while it is not known."},
		},
	}
}

func (r *instanceResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.client = clientOf(req.ProviderData, &resp.Diagnostics)
}

// take writes what the console says into the model.
func (m *instanceModel) take(shown *shownInstance) {
	m.ID = types.StringValue(shown.InstanceID)
	m.ClusterID = types.StringValue(shown.Cluster.ClusterID)
	m.Name = types.StringValue(shown.Name)
	m.Host = types.StringValue(shown.HostName)
	m.DeletionProtection = types.BoolValue(shown.Cluster.DeletionProtected)
	m.Port = pointerOr(shown.Port)
	m.ConnectionURI = types.StringNull()
	if shown.Forms != nil {
		m.ConnectionURI = types.StringValue(shown.Forms.URI)
	}
}

func (r *instanceResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan, config instanceModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	verifier, err := console.ScramVerifier(config.Password.ValueString())
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("password_wo"), "this password cannot be used", err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(ctx, createTime)
	defer cancel()
	input := map[string]any{"name": plan.Name.ValueString(), "passwordVerifier": verifier, "idempotencyKey": newKey()}
	if err := withHost(ctx, r.client, plan.Host, input); err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("host"), "could not choose the host", err.Error())
		return
	}
	var made struct {
		OperationID string `json:"operationId"`
		InstanceID  string `json:"instanceId"`
	}
	if err := r.client.Submit(ctx, "instance.create", input, &made); err != nil {
		resp.Diagnostics.AddError("could not create the instance", err.Error())
		return
	}
	// from here on there is something, whatever follows
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("id"), made.InstanceID)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("name"), plan.Name)...)
	if err := r.client.Wait(ctx, made.OperationID); err != nil {
		resp.Diagnostics.AddError("the instance was not created", err.Error())
		return
	}
	shown, err := findInstance(ctx, r.client, made.InstanceID)
	if err == nil && plan.DeletionProtection.ValueBool() {
		err = r.protect(ctx, shown, true)
	}
	if err != nil {
		resp.Diagnostics.AddError("the instance was created, but not set up", err.Error())
		return
	}
	plan.take(shown)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *instanceResource) protect(ctx context.Context, shown *shownInstance, on bool) error {
	input := map[string]any{"clusterId": shown.Cluster.ClusterID, "on": on}
	if err := r.client.Mutate(ctx, "cluster.deletionProtection", input, nil); err != nil {
		return err
	}
	shown.Cluster.DeletionProtected = on
	return nil
}

func (r *instanceResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state instanceModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	shown, err := showInstance(ctx, r.client, state.ID.ValueString())
	switch {
	case err != nil:
		resp.Diagnostics.AddError("could not read the instance", err.Error())
	case shown == nil:
		resp.State.RemoveResource(ctx)
	default:
		state.take(shown)
		resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	}
}

func (r *instanceResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state instanceModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	shown, err := findInstance(ctx, r.client, state.ID.ValueString())
	if wanted := plan.DeletionProtection.ValueBool(); err == nil && wanted != shown.Cluster.DeletionProtected {
		err = r.protect(ctx, shown, wanted)
	}
	if err != nil {
		resp.Diagnostics.AddError("could not change the instance", err.Error())
		return
	}
	plan.take(shown)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *instanceResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state instanceModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	err := r.client.Order(ctx, "instance.delete", map[string]any{
		"instanceId": state.ID.ValueString(), "confirmName": state.Name.ValueString(),
		"keepFiles": state.KeepFiles.ValueBool(), "idempotencyKey": newKey(),
	})
	if err != nil && !console.IsFault(err, "instance.not_found") {
		resp.Diagnostics.AddError("could not delete the instance", err.Error())
	}
}

// ImportState takes the name of an instance, or its id.
func (r *instanceResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	shown, err := findInstance(ctx, r.client, req.ID)
	if err != nil {
		resp.Diagnostics.AddError("could not import the instance", err.Error())
		return
	}
	if shown.Cluster.MemberRole != "primary" {
		resp.Diagnostics.AddError("could not import the instance", "It is a standby: import it as a floe_standby.")
		return
	}
	state := instanceModel{KeepFiles: types.BoolValue(false)}
	state.take(shown)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}
