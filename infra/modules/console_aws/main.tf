locals {
  tags           = merge(var.tags, { Name = var.machine_name })
  own            = var.certificate_parameter != ""
  enrolment_port = 3080
  parameter_arn  = local.own ? "arn:*:ssm:${var.region}:*:parameter${var.certificate_parameter}" : ""
  fetch = templatefile("${path.module}/../nvme_host_aws/token-from-parameter-store.tftpl", {
    region    = var.region
    parameter = var.certificate_parameter
    role      = var.machine_name
  })
  # the store answers in JSON, in which the ends of lines are written as \n
  certificate_program = "#!/bin/sh\nset -eu\nvalue=$(sh <<'END'\n${local.fetch}END\n)\nprintf '%b\\n' \"$value\"\n"
}

resource "aws_iam_role" "console" {
  name = var.machine_name
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

resource "aws_iam_role_policy" "certificate" {
  count = local.own ? 1 : 0
  name  = "read-certificate"
  role  = aws_iam_role.console.id
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect   = "Allow"
      Action   = "ssm:GetParameter"
      Resource = local.parameter_arn
    }]
  })
}

resource "aws_iam_instance_profile" "console" {
  name = var.machine_name
  role = aws_iam_role.console.name
  tags = local.tags
}

module "user_data" {
  source              = "../console_user_data"
  name                = var.name
  archive             = var.archive
  acme_email          = var.acme_email
  certificate_program = local.own ? local.certificate_program : ""
  enrolment_port      = local.enrolment_port
}

resource "aws_instance" "console" {
  # checkov:skip=CKV_AWS_126:the agent samples the machine each second; metrics of the cloud each minute would cost and add nothing
  ami                                  = var.ami
  instance_type                        = var.instance_type
  subnet_id                            = var.subnet_id
  vpc_security_group_ids               = var.security_group_ids
  iam_instance_profile                 = aws_iam_instance_profile.console.name
  user_data_base64                     = base64gzip(module.user_data.user_data)
  disable_api_termination              = var.protected
  instance_initiated_shutdown_behavior = "stop"
  ebs_optimized                        = true
  tags                                 = local.tags

  metadata_options {
    http_tokens                 = "required"
    http_put_response_hop_limit = 1
  }

  root_block_device {
    volume_type           = "gp3"
    volume_size           = var.root_size_gib
    encrypted             = true
    delete_on_termination = false
    tags                  = local.tags
  }

  lifecycle {
    # each of these would make a new machine, and the control database would stay behind
    ignore_changes = [ami, user_data_base64]
  }

  depends_on = [aws_iam_role_policy.certificate]
}

# the name in DNS leads to it, also after a stop
resource "aws_eip" "console" {
  domain   = "vpc"
  instance = aws_instance.console.id
  tags     = local.tags
}
