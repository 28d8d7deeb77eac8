output "user_data" {
  description = "User data for cloud-init. It holds no secret."
  value       = "#cloud-config\n${yamlencode(local.cloud_config)}"
}
