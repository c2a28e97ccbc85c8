import { sparseCases } from './all-cases.ts'
import { testOnBothMounts } from './both-mounts.ts'

// By default a manifest that lacks content is refused; the official suite has the set switched off too.
testOnBothMounts(sparseCases, { BERTH_MANIFESTS__MISSING_CONTENT: 'allow' })
