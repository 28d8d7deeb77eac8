package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/floe-db/terraform-provider-floe/internal/console"
)

// How long a token is good unless something else is said: a machine is made first, and starts.
const enrolmentMinutes = 60

// enrolmentToken is a one-time token with which one host, of one name, enrols itself. It is ephemeral: it stands in no state
// and no plan, and of a host that is enrolled there is none, so that a spent token changes nothing.
type enrolmentToken struct{ client *console.Client }

var _ ephemeral.EphemeralResourceWithConfigure = &enrolmentToken{}

type enrolmentModel struct {
	Host      types.String `tfsdk:"host"`
	Minutes   types.Int64  `tfsdk:"minutes"`
	Enrolled  types.Bool   `tfsdk:"enrolled"`
	Token     types.String `tfsdk:"token"`
	Authority types.String `tfsdk:"authority"`
	ExpiresAt types.Int64  `tfsdk:"expires_at"`
}

func (e *enrolmentToken) Metadata(_ context.Context, _ ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = "floe_enrolment_token"
}

func (e *enrolmentToken) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "A one-time token for enrolling a host, bound to its name. A newer one of the same name makes the older one void. Needs an API token of role admin.",
		Attributes: map[string]schema.Attribute{
			"host":       schema.StringAttribute{Required: true, Description: "The name that the host gets."},
			"minutes":    schema.Int64Attribute{Optional: true, Description: "How long it is good, up to 1440. Default 60."},
			"enrolled":   schema.BoolAttribute{Computed: true, Description: "True where the host is enrolled already: there is no token then."},
			"token":      schema.StringAttribute{Computed: true, Sensitive: true, Description: "The token; null where the host is enrolled already."},
			"authority":  schema.StringAttribute{Computed: true, Description: "sha256 of the console's authority, by which the host knows the console; null with the token."},
			"expires_at": schema.Int64Attribute{Computed: true, Description: "Until when it is good, in milliseconds since 1970; null with the token."},
		},
	}
}

func (e *enrolmentToken) Configure(_ context.Context, req ephemeral.ConfigureRequest, resp *ephemeral.ConfigureResponse) {
	e.client = clientOf(req.ProviderData, &resp.Diagnostics)
}

func (e *enrolmentToken) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	var model enrolmentModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	if resp.Diagnostics.HasError() {
		return
	}
	name := model.Host.ValueString()
	host, err := findHost(ctx, e.client, name)
	if err != nil {
		resp.Diagnostics.AddError("could not look for the host", err.Error())
		return
	}
	if host != nil && host.RevokedAt != nil {
		resp.Diagnostics.AddError("host \""+name+"\" was revoked",
			"Somebody took it out of the console. Remove it there to make a new one of the name, or enrol it again by \"floe host add "+name+" --again\".")
		return
	}
	model.Enrolled = types.BoolValue(host != nil)
	model.Token, model.Authority, model.ExpiresAt = types.StringNull(), types.StringNull(), types.Int64Null()
	if !model.Enrolled.ValueBool() {
		minutes := int64(enrolmentMinutes)
		if !model.Minutes.IsNull() {
			minutes = model.Minutes.ValueInt64()
		}
		var added struct {
			Token     string `json:"token"`
			Authority string `json:"authority"`
			ExpiresAt int64  `json:"expiresAt"`
		}
		input := map[string]any{"name": name, "again": false, "minutes": minutes}
		if err := e.client.Mutate(ctx, "host.add", input, &added); err != nil {
			resp.Diagnostics.AddError("could not get a token for the host", err.Error())
			return
		}
		model.Token = types.StringValue(added.Token)
		model.Authority = types.StringValue(added.Authority)
		model.ExpiresAt = types.Int64Value(added.ExpiresAt)
	}
	resp.Diagnostics.Append(resp.Result.Set(ctx, &model)...)
}
