output "subnet_ids" {
  description = "Subnet of each availability zone."
  value       = { for zone, subnet in aws_subnet.zone : zone => subnet.id }
}

output "host_security_group_id" {
  description = "Security group for hosts."
  value       = aws_security_group.host.id
}

output "console_security_group_id" {
  description = "Security group for the console's machine."
  value       = aws_security_group.console.id
}

output "instance_ports" {
  description = "First and last port of instances."
  value       = { first = local.first_port, last = local.last_port }
}
