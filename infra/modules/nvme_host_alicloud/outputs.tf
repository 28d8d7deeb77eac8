output "id" {
  description = "Identifier of the machine at the cloud (i-…)."
  value       = alicloud_instance.host.id
}

output "private_ip" {
  description = "Address in the network, where the agent and the instances answer."
  value       = alicloud_instance.host.private_ip
}

output "power_supply" {
  description = "Zone: hosts in the same one can fail together (\"floe host power-supply\")."
  value       = alicloud_instance.host.availability_zone
}
