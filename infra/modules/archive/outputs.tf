output "files" {
  description = "Entries of write_files of cloud-init: the program /usr/local/sbin/floe-fetch and what it reads."
  value = [
    { path = "/etc/floe/archive.env", permissions = "0600", content = local.settings },
    { path = "/usr/local/sbin/floe-fetch", permissions = "0755", content = file("${path.module}/fetch") },
  ]
}
