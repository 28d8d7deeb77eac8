//go:build tools

package tools

import _ "github.com/aliyun/terraform-provider-alicloud"
