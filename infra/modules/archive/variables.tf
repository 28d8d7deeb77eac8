variable "archive" {
  type        = object({ url = string, sha256 = string })
  description = "A checkout of Floe (git archive), or Debian packages of it in a directory (\"floe engine package\"), as .tar.gz, and its SHA-256 (64 hexadecimal digits). A machine unpacks no other."
  validation {
    condition     = can(regex("^https://[A-Za-z0-9.-]+(:[0-9]+)?/[A-Za-z0-9._~/%+=&?-]*$", var.archive.url))
    error_message = "The archive's address begins with https:// and consists of letters, digits and . _ ~ / % + = & ? -."
  }
  validation {
    condition     = can(regex("^[0-9a-f]{64}$", var.archive.sha256))
    error_message = "A SHA-256 has 64 hexadecimal digits in lower case."
  }
}
