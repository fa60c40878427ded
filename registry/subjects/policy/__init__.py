"""What new versions must satisfy: levels, modes, data contracts and guards; and the registries."""
