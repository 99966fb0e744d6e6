/** How an answer says that the call cost nothing. */
export const NOT_CHARGED = 'You were not charged';
