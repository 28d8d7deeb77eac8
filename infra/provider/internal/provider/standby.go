package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/floe-db/terraform-provider-floe/internal/console"
)

// standbyResource is a member that was added to a cluster. A switchover may make it the primary; it stays this resource.
type standbyResource struct{ client *console.Client }

var _ resource.ResourceWithImportState = &standbyResource{}

type standbyModel struct {
	ID        types.String `tfsdk:"id"`
	ClusterID types.String `tfsdk:"cluster_id"`
	Name      types.String `tfsdk:"name"`
	Host      types.String `tfsdk:"host"`
	KeepFiles types.Bool   `tfsdk:"keep_files_on_destroy"`
}

func (r *standbyResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "floe_standby"
}

func (r *standbyResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "A hot standby of a cluster: a page repair source, and the next primary if it has to be. One that has become the primary is not destroyed: switch back first.",
		Attributes: map[string]schema.Attribute{
			"id":         schema.StringAttribute{Computed: true, PlanModifiers: stays, Description: "Id of the instance."},
			"cluster_id": schema.StringAttribute{Required: true, PlanModifiers: replaces, Description: "The cluster it joins: `floe_instance.….cluster_id`."},
			"name":       schema.StringAttribute{Required: true, PlanModifiers: replaces, Description: "Lower-case letters, digits and hyphens."},
			"host":       schema.StringAttribute{Optional: true, Computed: true, PlanModifiers: chosen, Description: "Name of its host. Default: the one that answers and has the most free ports. Name another one than the primary's: a standby on the same host covers no failure of that host."},
			"keep_files_on_destroy": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false), Description: keepFilesWords,
			},
		},
	}
}

func (r *standbyResource) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	r.client = clientOf(req.ProviderData, &resp.Diagnostics)
}

func (m *standbyModel) take(shown *shownInstance) {
	m.ID = types.StringValue(shown.InstanceID)
	m.ClusterID = types.StringValue(shown.Cluster.ClusterID)
	m.Name = types.StringValue(shown.Name)
	m.Host = types.StringValue(shown.HostName)
}

func (r *standbyResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan standbyModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, createTime)
	defer cancel()
	input := map[string]any{"clusterId": plan.ClusterID.ValueString(), "name": plan.Name.ValueString(), "idempotencyKey": newKey()}
	if err := withHost(ctx, r.client, plan.Host, input); err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("host"), "could not choose the host", err.Error())
		return
	}
	var made struct {
		OperationID string `json:"operationId"`
		InstanceID  string `json:"instanceId"`
	}
	if err := r.client.Submit(ctx, "standby.create", input, &made); err != nil {
		resp.Diagnostics.AddError("could not create the standby", err.Error())
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("id"), made.InstanceID)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("name"), plan.Name)...)
	if err := r.client.Wait(ctx, made.OperationID); err != nil {
		resp.Diagnostics.AddError("the standby was not created", err.Error())
		return
	}
	shown, err := findInstance(ctx, r.client, made.InstanceID)
	if err != nil {
		resp.Diagnostics.AddError("the standby was created, but cannot be read", err.Error())
		return
	}
	plan.take(shown)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *standbyResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state standbyModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	shown, err := showInstance(ctx, r.client, state.ID.ValueString())
	switch {
	case err != nil:
		resp.Diagnostics.AddError("could not read the standby", err.Error())
	case shown == nil:
		resp.State.RemoveResource(ctx)
	default:
		state.take(shown)
		resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	}
}

// Update has nothing to ask of the console: only what a destroy does can change.
func (r *standbyResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan standbyModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *standbyResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state standbyModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	err := r.client.Order(ctx, "standby.remove", map[string]any{
		"instanceId": state.ID.ValueString(), "confirmName": state.Name.ValueString(),
		"keepFiles": state.KeepFiles.ValueBool(), "idempotencyKey": newKey(),
	})
	if err != nil && !console.IsFault(err, "instance.not_found") {
		resp.Diagnostics.AddError("could not remove the standby", err.Error())
	}
}

// ImportState takes the name of a standby, or its id.
func (r *standbyResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	shown, err := findInstance(ctx, r.client, req.ID)
	if err != nil {
		resp.Diagnostics.AddError("could not import the standby", err.Error())
		return
	}
	if shown.Cluster.MemberRole == "primary" {
		resp.Diagnostics.AddError("could not import the standby", "It is the primary of its cluster: import it as a floe_instance.")
		return
	}
	state := standbyModel{KeepFiles: types.BoolValue(false)}
	state.take(shown)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}
