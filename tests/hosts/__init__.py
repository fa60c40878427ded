"""Several hosts: network namespaces in which an operator's commands run, under load and faults."""
