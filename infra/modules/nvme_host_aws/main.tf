locals {
  parameter = "/floe/enrolment/${var.name}"
  role      = "floe-host-${var.name}"
  tags      = merge(var.tags, { Name = var.name })
}

# The token is written here and nowhere kept: neither in the state nor in user data, which everybody on the machine can read.
resource "aws_ssm_parameter" "token" {
  # checkov:skip=CKV_AWS_337:the token is good once and for minutes; the account's own key does, and another one would have to be paid for and granted
  name             = local.parameter
  description      = "One-time enrolment token of host ${var.name}"
  type             = "SecureString"
  value_wo         = var.enrolment_token
  value_wo_version = var.enrolment_token_version
  tags             = local.tags
}

resource "aws_iam_role" "host" {
  name = local.role
  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Action    = "sts:AssumeRole"
      Principal = { Service = "ec2.amazonaws.com" }
    }]
  })
  tags = local.tags
}

resource "aws_iam_role_policy" "token" {
  name = "read-own-enrolment-token"
  role = aws_iam_role.host.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect   = "Allow"
      Action   = "ssm:GetParameter"
      Resource = aws_ssm_parameter.token.arn
    }]
  })
}

resource "aws_iam_instance_profile" "host" {
  name = local.role
  role = aws_iam_role.host.name
  tags = local.tags
}

module "user_data" {
  source     = "../host_user_data"
  host_name  = var.name
  archive    = var.archive
  console    = var.console
  layout     = var.layout
  disk_model = var.ebs_data == null ? "Amazon EC2 NVMe Instance Storage" : "Amazon Elastic Block Store"
  token_program = templatefile("${path.module}/token-from-parameter-store.tftpl", {
    region    = var.region
    parameter = local.parameter
    role      = local.role
  })
}

resource "aws_instance" "host" {
  # checkov:skip=CKV_AWS_126:the agent samples the machine each second; metrics of the cloud each minute would cost and add nothing
  ami                                  = var.ami
  instance_type                        = var.instance_type
  subnet_id                            = var.subnet_id
  vpc_security_group_ids               = var.security_group_ids
  iam_instance_profile                 = aws_iam_instance_profile.host.name
  user_data_base64                     = base64gzip(module.user_data.user_data)
  disable_api_termination              = var.protected
  disable_api_stop                     = var.protected
  instance_initiated_shutdown_behavior = "stop"
  ebs_optimized                        = true
  tags                                 = local.tags

  metadata_options {
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  root_block_device {
    volume_type = "gp3"
    volume_size = var.root_size_gib
    encrypted   = true
    tags        = local.tags
  }

  dynamic "ebs_block_device" {
    for_each = var.ebs_data == null ? [] : [var.ebs_data]
    content {
      device_name           = "/dev/sdf"
      volume_type           = "gp3"
      volume_size           = ebs_block_device.value.size_gib
      iops                  = ebs_block_device.value.iops
      throughput            = ebs_block_device.value.throughput_mib
      encrypted             = true
      delete_on_termination = false
      tags                  = local.tags
    }
  }

  lifecycle {
    # each of these would make a new machine, and the data would be gone with the old one
    ignore_changes = [ami, user_data_base64]
  }

  # the machine asks for its token as soon as it has started
  depends_on = [aws_iam_role_policy.token]
}
