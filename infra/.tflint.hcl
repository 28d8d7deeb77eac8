# Every rule that tflint brings but those that are named below, each with its reason.
plugin "terraform" {
  enabled = true
  preset  = "all"
}

# an environment is an example to be copied, and is read in one piece
rule "terraform_standard_module_structure" {
  enabled = false
}
