locals {
  gib = 1024 * 1024 * 1024
  # as QEMU and XML read it
  files = [for id in libvirt_volume.nvme[*].id :
    replace(replace(replace(replace(id, ",", ",,"), "&", "&amp;"), "<", "&lt;"), "\"", "&quot;")
  ]
}

module "user_data" {
  source     = "../host_user_data"
  host_name  = var.name
  archive    = var.archive
  console    = var.console
  layout     = var.layout
  disk_model = "QEMU NVMe Ctrl"
  # what QEMU hands over, which only root can read in the machine
  token_program = file("${path.module}/token-from-qemu")
}

resource "libvirt_volume" "root" {
  name           = "${var.name}-root.qcow2"
  pool           = var.pool
  base_volume_id = var.base_volume_id
  size           = var.root_size_gib * local.gib
  format         = "qcow2"
}

resource "libvirt_volume" "nvme" {
  count  = length(var.nvme_sizes_gib)
  name   = "${var.name}-nvme${count.index}.raw"
  pool   = var.pool
  size   = var.nvme_sizes_gib[count.index] * local.gib
  format = "raw"
}

resource "libvirt_cloudinit_disk" "seed" {
  name      = "${var.name}-seed.iso"
  pool      = var.pool
  user_data = module.user_data.user_data
  meta_data = yamlencode({ instance-id = var.name, local-hostname = var.name })

  lifecycle {
    # it is read at the first start only, and another disk would make another machine
    ignore_changes = [user_data]
  }
}

resource "libvirt_domain" "host" {
  name      = var.name
  vcpu      = var.vcpus
  memory    = var.memory_mib
  autostart = true
  # cloud-init's disk is an IDE one, which the other type of machine lacks
  machine   = "pc"
  cloudinit = libvirt_cloudinit_disk.seed.id

  cpu {
    mode = "host-passthrough"
  }

  disk {
    volume_id = libvirt_volume.root.id
  }

  network_interface {
    network_name   = var.network
    hostname       = var.name
    addresses      = var.addresses
    wait_for_lease = true
  }

  console {
    type        = "pty"
    target_type = "serial"
    target_port = "0"
  }

  xml {
    xslt = templatefile("${path.module}/nvme.xsl.tftpl", { files = local.files, token_file = var.enrolment_token_file })
  }
}
