/** The number of a row. It has no meaning outside of the store. */
export type RowId = number
