"""What a run did, for people: layers in words, tables, where results depart."""
