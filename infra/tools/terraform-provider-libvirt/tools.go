//go:build tools

package tools

import _ "github.com/dmacvicar/terraform-provider-libvirt"
