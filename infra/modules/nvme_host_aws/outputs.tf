output "id" {
  description = "Identifier of the machine at the cloud (i-…)."
  value       = aws_instance.host.id
}

output "private_ip" {
  description = "Address in the network, where the agent and the instances answer."
  value       = aws_instance.host.private_ip
}

output "power_supply" {
  description = "Availability zone: hosts in the same one can fail together (\"floe host power-supply\")."
  value       = aws_instance.host.availability_zone
}
