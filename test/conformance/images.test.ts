import { imageCases } from './all-cases.ts'
import { testOnBothMounts } from './both-mounts.ts'

testOnBothMounts(imageCases)
