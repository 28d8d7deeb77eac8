terraform {
  # as the other modules
  required_version = ">= 1.11"
  required_providers {
    alicloud = {
      source  = "registry.terraform.io/aliyun/alicloud"
      version = "1.132.0"
    }
  }
}
