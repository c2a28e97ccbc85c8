/** A row's own number. Means nothing outside the store that gave it. */
export type RowId = number
