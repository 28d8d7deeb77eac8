variable "name" {
  type        = string
  description = "Name of the console in DNS, as floe.example.org: what browsers ask for, and what its certificate is for."
  validation {
    condition     = can(regex("^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\\.)+[a-z]{2,63}$", var.name)) && length(var.name) <= 253
    error_message = "A name of DNS in lower case with one dot at least, as floe.example.org."
  }
}

variable "archive" {
  type        = object({ url = string, sha256 = string })
  description = "A checkout of Floe as .tar.gz (git archive) and its SHA-256 (64 hexadecimal digits). A machine unpacks no other."
}

variable "acme_email" {
  type        = string
  default     = ""
  description = "Address that the certificate authority writes to; empty: none. Unused with certificate_program."
  validation {
    condition     = var.acme_email == "" || can(regex("^[A-Za-z0-9._+-]+@[A-Za-z0-9.-]+$", var.acme_email))
    error_message = "An address of e-mail of letters, digits and . _ + -."
  }
}

variable "certificate_program" {
  type        = string
  default     = ""
  description = "Text of a program that prints the certificate, its chain and its key in PEM, which it asks a secret store for at each start; empty: Caddy gets a certificate by ACME, for which the ports 80 and 443 must be reachable from the Internet."
  validation {
    condition     = var.certificate_program == "" || startswith(var.certificate_program, "#!/")
    error_message = "It begins with the line that names its interpreter, as #!/bin/sh."
  }
}

variable "enrolment_port" {
  type        = number
  default     = 3080
  description = "Port at which hosts of the network are enrolled, and nothing else is answered. Without TLS: a token crosses no wire, and hosts know the console by the fingerprint of its authority."
  validation {
    condition     = var.enrolment_port >= 1024 && var.enrolment_port <= 65535 && !contains([3000, 3001, 3002], var.enrolment_port)
    error_message = "1024 to 65535, and none that Floe itself takes (3000 to 3002)."
  }
}
