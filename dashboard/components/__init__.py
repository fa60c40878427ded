"""What all pages share: the frame, widgets, badges, links, text diffs, translation and time travel."""
