"""The pages of findings: the list, a finding with its evidence, and mutes."""
