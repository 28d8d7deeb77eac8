// terraform-provider-floe manages what a console of Floe manages: hosts' enrolment, instances, standbys, settings.
package main

import (
	"context"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/floe-db/terraform-provider-floe/internal/provider"
)

func main() {
	err := providerserver.Serve(context.Background(), provider.New, providerserver.ServeOpts{
		Address: "registry.terraform.io/floe-db/floe",
	})
	if err != nil {
		log.Fatal(err)
	}
}
