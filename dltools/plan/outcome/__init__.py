"""What comes of a round: decisions and a plan's actions (`decisions`), why there are none
(`nothing_to_do`), and advice to owners (`advice`)."""
