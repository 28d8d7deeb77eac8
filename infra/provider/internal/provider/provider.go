// Package provider is the Terraform provider of Floe.
package provider

import (
	"context"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/floe-db/terraform-provider-floe/internal/console"
)

// Variables of the environment, the same as the command line's.
const (
	urlVariable   = "FLOE_CONSOLE_URL"
	tokenVariable = "FLOE_CONSOLE_TOKEN"
)

type floeProvider struct{}

var _ provider.ProviderWithEphemeralResources = floeProvider{}

// New makes the provider.
func New() provider.Provider { return floeProvider{} }

type providerModel struct {
	URL   types.String `tfsdk:"url"`
	Token types.String `tfsdk:"token"`
}

func (floeProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "floe"
}

func (floeProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "Manages what a console of Floe manages.",
		Attributes: map[string]schema.Attribute{
			"url": schema.StringAttribute{
				Optional:    true,
				Description: "Address of the console, `https://…`; `http://` on this machine only. Default: `" + urlVariable + "` of the environment.",
			},
			"token": schema.StringAttribute{
				Optional:    true,
				Sensitive:   true,
				Description: "API token, of role operator; admin for enrolment tokens. Default: `" + tokenVariable + "` of the environment.",
			},
		},
	}
}

func (floeProvider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var config providerModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if config.URL.IsUnknown() || config.Token.IsUnknown() {
		resp.Diagnostics.AddError("the console's address or token is not known yet",
			"Create the console first, in an apply or a configuration of its own.")
		return
	}
	address, token := valueOr(config.URL, urlVariable), valueOr(config.Token, tokenVariable)
	if address == "" || token == "" {
		resp.Diagnostics.AddError("the provider floe is not configured",
			"Set url and token, or "+urlVariable+" and "+tokenVariable+" in the environment. "+
				"An API token is made in the console (page Account), or by \"floe token create\".")
		return
	}
	client, err := console.New(address, token)
	if err != nil {
		resp.Diagnostics.AddError("the provider floe is not configured", err.Error())
		return
	}
	resp.ResourceData, resp.DataSourceData, resp.EphemeralResourceData = client, client, client
}

func valueOr(value types.String, variable string) string {
	if value.IsNull() {
		return os.Getenv(variable)
	}
	return value.ValueString()
}

func (floeProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{
		func() resource.Resource { return &instanceResource{} },
		func() resource.Resource { return &standbyResource{} },
		func() resource.Resource { return &settingResource{} },
		func() resource.Resource { return &databaseRoleResource{} },
	}
}

func (floeProvider) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{func() datasource.DataSource { return &hostDataSource{} }}
}

func (floeProvider) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	return []func() ephemeral.EphemeralResource{
		func() ephemeral.EphemeralResource { return &enrolmentToken{} },
	}
}
