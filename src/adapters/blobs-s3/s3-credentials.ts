import { askContainer, askForWebIdentity, askInstance } from './credential-services.ts'
import { type CredentialSource, FixedCredentials, RenewedCredentials } from './credential-source.ts'

/** What the settings say of credentials. */
export interface CredentialSettings {
  readonly s3Region: string
  readonly s3AccessKey: string | undefined
  readonly s3SecretKey: string | undefined
  readonly s3SessionToken: string | undefined
  readonly s3RoleArn: string | undefined
  readonly s3TokenFile: string | undefined
  readonly s3StsEndpoint: string | undefined
  readonly s3CredentialsPath: string | undefined
  readonly s3CredentialsUri: string | undefined
  readonly s3CredentialsToken: string | undefined
  readonly s3CredentialsTokenFile: string | undefined
}

/** The first that is named: a fixed key, a web identity, a container's own; else the instance's. */
export function chooseCredentials(settings: CredentialSettings): CredentialSource {
  const { s3AccessKey: id, s3SecretKey: secret, s3RoleArn: roleArn, s3TokenFile: tokenFile } = settings
  if (id !== undefined && secret !== undefined) return new FixedCredentials(id, secret, settings.s3SessionToken)
  if (id !== undefined || secret !== undefined) throw new Error('an S3 access key needs its id and its secret')
  if (roleArn !== undefined && tokenFile !== undefined) {
    const stsEndpoint = settings.s3StsEndpoint ?? `https://sts.${settings.s3Region}.${domainOf(settings.s3Region)}`
    return new RenewedCredentials(() => askForWebIdentity({ stsEndpoint, roleArn, tokenFile }))
  }
  const uri = containerAddressOf(settings)
  if (uri === undefined) return new RenewedCredentials(askInstance)
  const { s3CredentialsToken: token, s3CredentialsTokenFile: containerTokenFile } = settings
  return new RenewedCredentials(() => askContainer(uri, { token, tokenFile: containerTokenFile }))
}

/** Where a container asks for its role: ECS names a path at its own agent, EKS and others the whole address. */
export function containerAddressOf({
  s3CredentialsPath: path,
  s3CredentialsUri: uri,
}: Pick<CredentialSettings, 's3CredentialsPath' | 's3CredentialsUri'>): string | undefined {
  return path === undefined ? uri : `http://169.254.170.2${path}`
}

function domainOf(region: string): string {
  return region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com'
}
