"""What comes of a round: decisions and a plan's actions (`decisions`), how these are written
(`records`), why there are none (`nothing_to_do`), and advice to owners (`advice`)."""
