locals {
  role = "floe-host-${var.name}"
  tags = merge(var.tags, { Name = var.name })
}

resource "alicloud_ram_role" "host" {
  name        = local.role
  description = "Host ${var.name} of Floe"
  document = jsonencode({
    Version = "1"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = ["ecs.aliyuncs.com"] }
    }]
  })
}

resource "alicloud_ram_policy" "token" {
  policy_name = "${local.role}-token"
  description = "Host ${var.name} reads its own enrolment token"
  policy_document = jsonencode({
    Version = "1"
    Statement = [{
      Effect   = "Allow"
      Action   = ["kms:GetSecretValue"]
      Resource = ["acs:kms:${var.region}:*:secret/${var.enrolment_secret}"]
    }]
  })
}

resource "alicloud_ram_role_policy_attachment" "token" {
  role_name   = alicloud_ram_role.host.name
  policy_name = alicloud_ram_policy.token.policy_name
  policy_type = "Custom"
}

module "user_data" {
  source     = "../host_user_data"
  host_name  = var.name
  archive    = var.archive
  console    = var.console
  layout     = var.layout
  disk_model = var.disk_model
  token_program = templatefile("${path.module}/token-from-secrets-manager.tftpl", {
    region = var.region
    secret = var.enrolment_secret
    role   = local.role
  })
}

resource "alicloud_instance" "host" {
  instance_name              = var.name
  host_name                  = var.name
  description                = "Host of Floe"
  image_id                   = var.image_id
  instance_type              = var.instance_type
  vswitch_id                 = var.vswitch_id
  security_groups            = var.security_group_ids
  role_name                  = alicloud_ram_role.host.name
  user_data                  = base64gzip(module.user_data.user_data)
  deletion_protection        = var.protected
  key_name                   = var.key_pair
  system_disk_category       = "cloud_essd"
  system_disk_size           = var.root_size_gib
  internet_charge_type       = "PayByTraffic"
  internet_max_bandwidth_out = var.internet_bandwidth_mbit
  tags                       = local.tags
  volume_tags                = local.tags

  lifecycle {
    # each of these would start the machine anew from another system, or with other user data
    ignore_changes = [image_id, user_data]
  }

  # the machine asks for its token as soon as it has started
  depends_on = [alicloud_ram_role_policy_attachment.token]
}
