variable "name" {
  type        = string
  description = "Name of the machine and of the host in the console; \"floe host add NAME\" gave the token for it. Lower-case letters, digits and \"-\", at most 40 characters."
  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$", var.name))
    error_message = "A host's name consists of lower-case letters, digits and \"-\", and begins with a letter; at most 40 characters."
  }
}

variable "hypervisor" {
  type        = string
  description = "Name of the machine that it runs on: hosts on the same one fail together."
  validation {
    condition     = can(regex("^[A-Za-z0-9][A-Za-z0-9 ._-]{0,62}$", var.hypervisor))
    error_message = "Letters, digits, spaces and . _ -, at most 63 characters."
  }
}

variable "pool" {
  type        = string
  default     = "default"
  description = "Storage pool of libvirt, a directory, for all disks of the machine."
}

variable "base_volume_id" {
  type        = string
  description = "Volume of the image that the system's disk begins as: Debian 12 \"generic\" (\"genericcloud\" has no driver for the disk that cloud-init reads)."
}

variable "vcpus" {
  type        = number
  default     = 4
  description = "Number of virtual processors."
  validation {
    condition     = var.vcpus >= 1 && var.vcpus <= 256 && floor(var.vcpus) == var.vcpus
    error_message = "A whole number from 1 to 256."
  }
}

variable "memory_mib" {
  type        = number
  default     = 8192
  description = "Memory in MiB."
  validation {
    condition     = var.memory_mib >= 2048 && floor(var.memory_mib) == var.memory_mib
    error_message = "2048 MiB at least: Floe is built on the host."
  }
}

variable "root_size_gib" {
  type        = number
  default     = 30
  description = "Size of the system's disk in GiB. It holds Floe and its build, no data."
  validation {
    condition     = var.root_size_gib >= 20 && var.root_size_gib <= 1000
    error_message = "20 to 1000 GiB."
  }
}

variable "nvme_sizes_gib" {
  type        = list(number)
  default     = [100]
  description = "Size of each emulated NVMe disk in GiB; one at least."
  validation {
    condition     = length(var.nvme_sizes_gib) >= 1 && length(var.nvme_sizes_gib) <= 8 && alltrue([for size in var.nvme_sizes_gib : size >= 11])
    error_message = "One to eight disks of 11 GiB at least."
  }
}

variable "layout" {
  type        = string
  default     = "single"
  description = "What the disks become: \"single\" (exactly one), \"raid0\" or \"lvm\" (two or more, striped)."
  validation {
    condition     = var.layout == "single" ? length(var.nvme_sizes_gib) == 1 : length(var.nvme_sizes_gib) >= 2
    error_message = "\"single\" takes exactly one NVMe disk, \"raid0\" and \"lvm\" two or more."
  }
}

variable "network" {
  type        = string
  default     = "default"
  description = "Network of libvirt that the machine is in; the console has to reach the agent's port in it."
}

variable "addresses" {
  type        = list(string)
  default     = []
  description = "Address that the network gives the machine; empty: it chooses one."
}

variable "archive" {
  type        = object({ url = string, sha256 = string })
  description = "A checkout of Floe, or its packages, as .tar.gz and its SHA-256: see host_user_data."
}

variable "console" {
  type        = object({ url = string, authority = string })
  description = "Address of the console and fingerprint of its authority: see host_user_data."
}

variable "enrolment_token_file" {
  type        = string
  description = "File on the hypervisor, which only QEMU's user can read, with the one-time token of \"floe host add NAME\". It is read when the machine starts, and is in no plan and no state."
  validation {
    condition     = can(regex("^/[A-Za-z0-9._/-]+$", var.enrolment_token_file))
    error_message = "An absolute path of letters, digits and . _ / -."
  }
}
