import { testOnBothMounts } from './both-mounts.ts'
import { rangeCases } from './range-cases.ts'

testOnBothMounts(rangeCases)
