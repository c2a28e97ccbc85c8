import { testOnBothMounts } from './both-mounts.ts'
import { chunkedCases } from './chunked-cases.ts'

testOnBothMounts(chunkedCases)
