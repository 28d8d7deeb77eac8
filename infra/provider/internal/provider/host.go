package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/floe-db/terraform-provider-floe/internal/console"
)

// hostDataSource is a host that is enrolled.
type hostDataSource struct{ client *console.Client }

type hostModel struct {
	ID       types.String `tfsdk:"id"`
	Name     types.String `tfsdk:"name"`
	AgentURL types.String `tfsdk:"agent_url"`
	State    types.String `tfsdk:"state"`
}

func (d *hostDataSource) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = "floe_host"
}

func (d *hostDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "A host that is enrolled in the console.",
		Attributes: map[string]schema.Attribute{
			"id":        schema.StringAttribute{Computed: true, Description: "Id of the host."},
			"name":      schema.StringAttribute{Required: true, Description: "Its name."},
			"agent_url": schema.StringAttribute{Computed: true, Description: "Where its agent answers."},
			"state":     schema.StringAttribute{Computed: true, Description: "online, stale, offline or unknown, as last observed."},
		},
	}
}

func (d *hostDataSource) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.client = clientOf(req.ProviderData, &resp.Diagnostics)
}

func (d *hostDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var model hostModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	if resp.Diagnostics.HasError() {
		return
	}
	host, err := findHost(ctx, d.client, model.Name.ValueString())
	if err == nil && host == nil {
		err = fmt.Errorf("host %q does not exist", model.Name.ValueString())
	}
	if err != nil {
		resp.Diagnostics.AddError("could not read the host", err.Error())
		return
	}
	model.ID = types.StringValue(host.HostID)
	model.AgentURL = types.StringValue(host.AgentURL)
	model.State = types.StringValue(host.State)
	resp.Diagnostics.Append(resp.State.Set(ctx, &model)...)
}
