"""Acting: plans become settings of containers, checked, journalled and undone."""
