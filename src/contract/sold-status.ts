/** The success statuses with which an answer can be sold; documents show the first one that an operation declares. */
export const SOLD_STATUSES = [200, 201, 202, 203, 204] as const;

export type SoldStatus = (typeof SOLD_STATUSES)[number];

export function isSoldStatus(status: number): status is SoldStatus {
  return SOLD_STATUSES.some(each => each === status);
}
