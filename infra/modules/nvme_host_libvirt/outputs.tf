output "id" {
  description = "Identifier of the machine at libvirt."
  value       = libvirt_domain.host.id
}

output "private_ip" {
  description = "Address in the network, where the agent and the instances answer; null until the network has given one."
  value       = try(libvirt_domain.host.network_interface[0].addresses[0], null)
}

output "power_supply" {
  description = "Hypervisor: hosts on the same one can fail together (\"floe host power-supply\")."
  value       = var.hypervisor
}
