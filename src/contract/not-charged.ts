/** The phrase for calls that cost nothing. */
export const NOT_CHARGED = 'You were not charged';
