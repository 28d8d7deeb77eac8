variable "host_name" {
  type        = string
  description = "Name of the machine and of the host in the console: lower-case letters, digits and \"-\", at most 40 characters."
  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$", var.host_name))
    error_message = "A host's name consists of lower-case letters, digits and \"-\", and begins with a letter; at most 40 characters."
  }
}

variable "archive" {
  type        = object({ url = string, sha256 = string })
  description = "A checkout of Floe (git archive), or Debian packages of it in a directory (\"floe engine package\"), as .tar.gz, and its SHA-256 (64 hexadecimal digits). A machine unpacks no other."
}

variable "console" {
  type        = object({ url = string, authority = string })
  description = "Address of the console as the host reaches it, and the fingerprint of its authority (\"sha256:\" and 64 hexadecimal digits): both stand in the command that \"floe host add\" prints."
  validation {
    condition     = can(regex("^https?://[A-Za-z0-9.-]+(:[0-9]+)?$", var.console.url))
    error_message = "The console's address is http:// or https://, a name or an IPv4 address, and perhaps a port."
  }
  validation {
    condition     = can(regex("^sha256:[0-9a-f]{64}$", var.console.authority))
    error_message = "The fingerprint is \"sha256:\" and 64 hexadecimal digits in lower case."
  }
}

variable "layout" {
  type        = string
  default     = "single"
  description = "What the disks become: \"single\" (exactly one), \"raid0\" or \"lvm\" (two or more, striped)."
  validation {
    condition     = contains(["single", "raid0", "lvm"], var.layout)
    error_message = "The layout is \"single\", \"raid0\" or \"lvm\"."
  }
}

variable "disk_model" {
  type        = string
  default     = ""
  description = "Pattern of the model of the disks to use, in which * stands for anything; empty: every empty local NVMe disk."
  validation {
    condition     = can(regex("^[A-Za-z0-9 ._*-]{0,60}$", var.disk_model))
    error_message = "The pattern consists of letters, digits, spaces and . _ * -; at most 60 characters."
  }
}

variable "token_program" {
  type        = string
  description = "Text of a program that prints the enrolment token, which it asks a secret store for. The token itself must not be in it."
  validation {
    condition     = startswith(var.token_program, "#!/")
    error_message = "It begins with the line that names its interpreter, as #!/bin/sh."
  }
}
