output "id" {
  description = "Identifier of the machine at the cloud (i-…)."
  value       = aws_instance.console.id
}

output "public_ip" {
  description = "Address that the console's name has to lead to."
  value       = aws_eip.console.public_ip
}

output "enrolment_url" {
  description = "Address at which hosts of the network are enrolled: console.url of nvme_host_aws."
  value       = "http://${aws_instance.console.private_ip}:${local.enrolment_port}"
}
