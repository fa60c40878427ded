"""The pages of subjects: the list, a subject's page, fields, references, life cycle and bulk changes."""
