output "vswitch_ids" {
  description = "vSwitch of each zone."
  value       = { for zone, vswitch in alicloud_vswitch.zone : zone => vswitch.id }
}

output "host_security_group_id" {
  description = "Security group for hosts."
  value       = alicloud_security_group.host.id
}

output "console_security_group_id" {
  description = "Security group for the console's machine."
  value       = alicloud_security_group.console.id
}

output "instance_ports" {
  description = "First and last port of instances."
  value       = { first = local.first_port, last = local.last_port }
}
