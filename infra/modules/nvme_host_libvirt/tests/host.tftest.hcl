mock_provider "libvirt" {}

variables {
  name           = "db1"
  hypervisor     = "hv1"
  base_volume_id = "/pool/debian-12.qcow2"
  archive = {
    url    = "https://files.example.org/floe.tar.gz"
    sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
  }
  console = {
    url       = "https://console.example.org"
    authority = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
  }
  enrolment_token_file = "/etc/floe-tokens/db1"
}

run "one_disk" {
  assert {
    condition     = length(libvirt_volume.nvme) == 1 && libvirt_volume.nvme[0].size == 100 * 1024 * 1024 * 1024
    error_message = "There is one NVMe disk of 100 GiB."
  }
  assert {
    condition     = length(libvirt_domain.host.disk) == 1
    error_message = "The NVMe disk is no other disk of the machine, too."
  }
  assert {
    condition = strcontains(libvirt_domain.host.xml[0].xslt,
    "\"file=${libvirt_volume.nvme[0].id},if=none,id=floe-nvme0,format=raw,cache=none,discard=unmap\"")
    error_message = "QEMU gets the disk, with every flush kept."
  }
  assert {
    condition     = strcontains(libvirt_domain.host.xml[0].xslt, "\"name=opt/floe.enrolment-token,file=/etc/floe-tokens/db1\"")
    error_message = "QEMU reads the token from its file."
  }
  assert {
    condition     = strcontains(libvirt_cloudinit_disk.seed.user_data, "FLOE_DISK_MODEL='QEMU NVMe Ctrl'")
    error_message = "Only the emulated NVMe disks are used."
  }
  assert {
    condition     = output.power_supply == "hv1"
    error_message = "Hosts of one hypervisor fail together."
  }
}

run "striped" {
  variables {
    nvme_sizes_gib = [20, 20]
    layout         = "lvm"
  }
  assert {
    condition     = strcontains(libvirt_domain.host.xml[0].xslt, "nvme,drive=floe-nvme1,serial=floe1")
    error_message = "Both disks are there, with serial numbers of their own."
  }
  assert {
    condition     = contains(yamldecode(module.user_data.user_data).packages, "lvm2")
    error_message = "A stripe by LVM needs lvm2."
  }
}

run "disks_that_do_not_fit_the_layout" {
  command = plan
  variables {
    nvme_sizes_gib = [20, 20]
  }
  expect_failures = [var.layout]
}

run "wrong_values" {
  command = plan
  variables {
    name                 = "DB 1"
    hypervisor           = "'"
    vcpus                = 0
    memory_mib           = 512
    root_size_gib        = 1
    nvme_sizes_gib       = [1]
    enrolment_token_file = "token,x"
  }
  expect_failures = [var.name, var.hypervisor, var.vcpus, var.memory_mib, var.root_size_gib, var.nvme_sizes_gib, var.enrolment_token_file]
}
