terraform {
  required_version = ">= 1.11"
  required_providers {
    libvirt = {
      source  = "registry.terraform.io/dmacvicar/libvirt"
      version = "0.8.3"
    }
  }
}
