import { testOnBothMounts } from './both-mounts.ts'
import { onceCases } from './once-cases.ts'

testOnBothMounts(onceCases)
